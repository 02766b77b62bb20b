# Cmake with Ninja configures and builds a small project.
. "$(dirname "$0")/lib.sh"
need cmake ninja
mkdir "$T/project"
cat >"$T/project/CMakeLists.txt" <<'M'
cmake_minimum_required(VERSION 3.20)
project(hello LANGUAGES C)
include(CheckIncludeFile)
check_include_file(stdio.h HAVE_STDIO)
add_library(part STATIC part.c)
add_executable(hello main.c)
target_link_libraries(hello part)
enable_testing()
add_test(NAME hello COMMAND hello)
M
echo 'int part(void) { return 0; }' >"$T/project/part.c"
echo 'int puts(const char *); int part(void); int main() { puts("built"); return part(); }' >"$T/project/main.c"
TOOLS=${TOOLS##* }
same bash -c "cmake -G Ninja -S $T/project -B b | sed 's/([0-9.]*s)//' && ninja -C b -j1 hello && b/hello && sha256sum b/hello && ctest --test-dir b | grep passed, && cmake --version"
