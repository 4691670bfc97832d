"""What answers are tried on, models, graphs and batches: a folder for each lesson, a file for each exercise.

Observers run answers on them; judges compute from them what is right.
"""
