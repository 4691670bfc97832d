"""What sends results out. Trusted code on texts of learners: whatever they wrote is shown, and runs nowhere."""
