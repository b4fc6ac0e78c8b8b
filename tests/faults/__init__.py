"""`make faults`: what a training run survives, tried out and counted. Of the product it knows the command line."""
