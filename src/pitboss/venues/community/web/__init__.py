"""The pages of the community venue in the web app."""
