# How targets are declared here. Each folder of src/ is one static library with its tests beside the sources:
#
#   aimaster_library(core SOURCES ids.cc DEPENDS fmt)
#   aimaster_test(ids_test SOURCES ids_test.cc DEPENDS core)
#   aimaster_fuzzer(parameter_fuzzer SOURCES parameter_fuzzer.cc DEPENDS core)
#
# A library `core` is the target aimaster_core. DEPENDS takes our own libraries by folder name and others by target name.

add_library(aimaster_flags INTERFACE)
target_compile_options(aimaster_flags INTERFACE
  -Wall -Wextra -Wswitch-enum -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>  # GCC 12 warns of variants that it has not followed
)
# GCC has said all it has to say in the tree `check`; of several files at once it warns of what each alone doesn't do.
if("$ENV{CI}" AND NOT AIMASTER_SANITIZE STREQUAL "thread")
  target_compile_options(aimaster_flags INTERFACE -Werror)
endif()
if(AIMASTER_SANITIZE)
  target_compile_options(aimaster_flags INTERFACE -fsanitize=${AIMASTER_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(aimaster_flags INTERFACE -fsanitize=${AIMASTER_SANITIZE})
  if(AIMASTER_SANITIZE STREQUAL "thread")  # it does not know fences, which Asio uses beside its locks
    target_compile_options(aimaster_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(AIMASTER_FUZZ)
  target_compile_options(aimaster_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(aimaster_link target)
  target_link_libraries(${target} PUBLIC aimaster_flags)
  foreach(dependency ${ARGN})
    if(EXISTS ${CMAKE_SOURCE_DIR}/src/${dependency})
      target_link_libraries(${target} PUBLIC aimaster_${dependency})
    else()
      target_link_libraries(${target} PUBLIC ${dependency})
    endif()
  endforeach()
endfunction()

function(aimaster_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  foreach(source ${ARG_SOURCES})  # every command has options and a Run of its own
    if(source MATCHES "_command.cc$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  add_library(aimaster_${name} STATIC ${ARG_SOURCES})
  aimaster_link(aimaster_${name} ${ARG_DEPENDS})
endfunction()

function(aimaster_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  aimaster_link(${name} ${ARG_DEPENDS})
endfunction()

function(aimaster_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  aimaster_link(${name} ${ARG_DEPENDS} GTest::gtest GTest::gtest_main Threads::Threads)
  if(AIMASTER_SANITIZE)  # what is tested is optimised; the tests themselves compile twice as fast without
    target_compile_options(${name} PRIVATE -O0)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "AIMASTER_BIN=${CMAKE_BINARY_DIR}/bin;AIMASTER_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

# A fuzzer is a libFuzzer program when AIMASTER_FUZZ is on; otherwise it replays its corpus (tests/corpus/<name>) as a test.
function(aimaster_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(AIMASTER_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCES} ${CMAKE_SOURCE_DIR}/cmake/replay_corpus.cc)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_SOURCE_DIR}/tests/corpus/${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  aimaster_link(${name} ${ARG_DEPENDS})
endfunction()
