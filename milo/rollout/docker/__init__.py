"""The sandbox on a Docker engine of this host: images, containers, networks, and their reaper."""
