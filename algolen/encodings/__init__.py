"""Position encodings: one file a family. `base` holds the contract, `composition` and `expression` join them."""
