"""`paribus report`: what a sweep found as one page for people who never saw paribus, and as Markdown."""
