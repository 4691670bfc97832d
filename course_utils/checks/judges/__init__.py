"""What is asked, and what is right: a folder for each lesson, a file for each exercise."""
