"""Plans and figures as one self-contained HTML file: no script, no request, light and dark."""
