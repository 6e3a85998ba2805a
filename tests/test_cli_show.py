"""`fairtrial show`: one run, with all that is known of it."""

import json

import pytest
from cli_studies import *  # noqa: F403
