"""What belongs to what: user's line, FX node, scheduler node, kernel, launch. Each link says its proof."""
