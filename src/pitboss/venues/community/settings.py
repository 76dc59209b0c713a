"""The settings that only the community venue has."""

from pydantic import Field

from pitboss.bootstrap.settings import VenueSettings


class CommunitySettings(VenueSettings):
    """The settings of the community venue, with defaults and descriptions."""

    github_api_url: str = Field(
        default="https://api.github.com",
        description="Address of GitHub's API, where reports become issues if the secret GITHUB_TOKEN is set.",
    )
