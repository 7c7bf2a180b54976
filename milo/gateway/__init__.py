"""How the model is reached and metered."""
