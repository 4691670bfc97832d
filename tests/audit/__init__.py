"""The watch over a training: right loops that it must leave in peace, and faulty ones that it must see through."""
