"""What commands share, ours and those of venues: output, options, and the workspace they work in."""
