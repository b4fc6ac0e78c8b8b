"""What the pipeline costs: training, decoding, preparation and start-up, measured on this machine."""
