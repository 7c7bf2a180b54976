"""Figures for a paper, drawn by matplotlib as vector files in one style."""
