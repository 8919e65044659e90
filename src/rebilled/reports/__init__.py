"""Reports: one file a form, offering `REPORT`."""

from __future__ import annotations

from rebilled.registry import Registry
from rebilled.reports.report import Options, Report

REPORTS: Registry[Report] = Registry("rebilled.reports", "REPORT")

__all__ = ["REPORTS", "Options", "Report"]
