"""Statistics of results: the one place for estimates, confidence intervals and hypothesis tests.

One module per subject: Sharpe ratios (`returns`), the stationary `bootstrap`, shares and exact tests (`binomial`), Student's
distribution (`student`), `scores` and `calibration` of forecasts, backtest `overfitting`, `paired` differences between
entries and the `tiers` that follow from them. All functions are pure: numbers in, numbers out. They import `core` and numpy
only and know no runs, venues or models.
"""
