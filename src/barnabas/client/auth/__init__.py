"""How clients log in."""
