// cairnctl: asks one cache node from the command line.
#include <iostream>

#include "client/ctl/command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return cairn::ctl::RunCairnctl(arguments, {&std::cin, &std::cout}, &std::cerr);
}
