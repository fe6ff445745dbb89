"""Pictures as SVG, for what shows documents as HTML."""
