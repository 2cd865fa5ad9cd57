"""Rankings on Spark (DSkype, Skype section 7): shards that rank, and what ties them to a stream's checkpoint."""
