# Java, with its own code generator, signal use and threads.
. "$(dirname "$0")/lib.sh"
need java
TOOLS=none
same java -Xint -XX:+UseSerialGC -version
