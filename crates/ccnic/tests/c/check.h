/* A failed check ends the program with its line and the library's last sentence. */
#include <stdio.h>

#include "ccnic.h"

#define CHECK(x) \
  do { \
    if (!(x)) { \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #x, ccnic_last_error()); \
      return 1; \
    } \
  } while (0)
