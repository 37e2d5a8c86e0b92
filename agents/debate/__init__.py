"""The debate: bull, bear, claims checker, arbitrator and the graph that joins them."""
