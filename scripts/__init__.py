"""The scripts, as the command ``zoo`` runs them where the project is installed."""
