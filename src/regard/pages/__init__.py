"""Pages: numbers turned into pictures. Each is one HTML file that needs no network, no server and no build step."""
