"""What the pipeline costs: training, decoding, preparation and start-up, measured on the machine at hand."""
