"""`pitboss predict …`: binary prediction markets."""

from typing import Annotated

from cyclopts import App, Parameter

from pitboss.cli import screen
from pitboss.cli.options import Json, given
from pitboss.venues.predict.svi import Generation

app = App(name="predict", help="Binary prediction markets: prices from a volatility surface.")


@app.command
def price(
    *,
    forward: Annotated[float, given("--forward", "Forward price of the underlying, in USD.")],
    strike: Annotated[float, given("--strike", "Strike, in USD.")],
    svi: Annotated[
        str,
        Parameter(
            name="--svi",
            allow_leading_hyphen=True,
            help="The surface as five numbers: a,b,rho,m,sigma (total variance).",
        ),
    ],
    pricing: Annotated[Generation, given("--pricing", "v1: N(d2). v2: with the term of the skew.")] = "v1",
    json: Json = False,
) -> None:
    """Fair prices of UP and DOWN at a strike.

    The variance is total, up to expiry: no time is asked for. For example:

        pitboss predict price --forward 63200 --strike 63000 --svi 0.0004,0.01,-0.2,0,0.01
    """
    from pitboss.core.errors import UserError
    from pitboss.venues.predict.svi import Svi, fair

    try:
        a, b, rho, m, sigma = map(float, svi.split(","))
    except ValueError:
        raise UserError(
            f"--svi {svi!r} is not five numbers", "for example --svi 0.0004,0.01,-0.2,0,0.01 (a,b,rho,m,sigma)"
        ) from None
    found = fair(pricing, forward, strike, Svi(a, b, rho, m, sigma))
    if json:
        screen.put_json({"up": found.up, "down": found.down, "w": found.w, "d2": found.d2})
        return
    screen.put(f"UP (YES)   {found.up:.9f}")
    screen.put(f"DOWN (NO)  {found.down:.9f}")
    screen.put(f"total variance {found.w:.9g}, d2 {found.d2:.9g}, pricing {pricing}")
