"""The measurements, one file each with `MEASURE = Measure(name, summary, run)`."""
