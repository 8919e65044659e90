"""What a call costs: dated rates by model, seller and terms."""

from rebilled.pricing.prices import Prices
from rebilled.pricing.row import PricedModel, PriceRow, Surcharge, UsdPerMtok

__all__ = ["PriceRow", "PricedModel", "Prices", "Surcharge", "UsdPerMtok"]
