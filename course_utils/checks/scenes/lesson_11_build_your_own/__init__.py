"""What the stages of lesson 11 are tried on."""
