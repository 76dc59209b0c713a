"""One file for each measurement. A file here has `MEASURE = Measure(name, summary, run)`."""
