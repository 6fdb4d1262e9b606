import os
import signal

from attack import SCENE, tell

children, why = 0, None
while children < SCENE["most"]:
    try:
        number = os.fork()
    except OSError as error:
        why = str(error)
        break
    if number == 0:
        signal.pause()
    children += 1
tell(["forks without end"] if why is None else [], {"forks": f"{why} after {children}"})
