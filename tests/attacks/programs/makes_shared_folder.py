import json
import os
import sys
import time

# Makes a folder in shared memory in which the racing program of another check waits for the end of
# this check, when root clears what this program's user left.
folder = json.load(sys.stdin)["config"]["folder"]
try:
    os.mkdir(folder)
    os.chmod(folder, 0o777)
except FileExistsError:
    pass
for _ in range(600):
    if os.path.exists(f"{folder}/B/ready"):
        break
    time.sleep(0.001)
ready = os.path.exists(f"{folder}/B/ready")
print(json.dumps({"score": 1, "details": {"ready": ready}}))
