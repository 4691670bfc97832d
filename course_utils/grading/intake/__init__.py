"""What takes submissions in. Trusted code on untrusted bytes: it reads files, and runs nothing that is in them."""
