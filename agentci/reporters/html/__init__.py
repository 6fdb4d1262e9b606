"""The report for people who look: one page that needs nothing but itself."""
