"""libaimaster-recorder.so: what of it is called, and the numbers of src/probe/record.h that go into it.

Through PyDLL, since its functions never wait: to let go of the interpreter's lock for each would cost more than they
do.
"""
import ctypes

TORCH = 3  # RecordSource
NONE = 0xFFFFFFFF
NO_TICKET = 0xFFFFFFFF

# RecordFunction
(OTHER, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, ALL_TO_ALL, GATHER, SCATTER, SCAN, BARRIER, SEND,
 RECEIVE) = range(13)

# RecordOperationFlag
POINT_TO_POINT = 1
BLOCKING = 2
SIZE_VARIES = 4

# RecordType, by the name that torch has for it; what it may not have yet is simply not there
TYPES = {"bool": 2, "int8": 3, "uint8": 4, "int16": 5, "uint16": 6, "int32": 7, "uint32": 8, "int64": 9, "uint64": 10,
         "float16": 11, "bfloat16": 12, "float32": 13, "float64": 14, "complex64": 16, "complex128": 17,
         "float8_e4m3fn": 18, "float8_e5m2": 19}

_WORD, _LONG, _POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class Library(object):
    def __init__(self, path):
        loaded = ctypes.PyDLL(path)

        def function(name, result, *arguments):
            found = getattr(loaded, name)
            found.restype, found.argtypes = result, arguments
            return found

        self.open = function("RecorderOpen", _POINTER, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), _WORD)
        self.finish = function("RecorderFinish", None, _POINTER)
        self.set_world = function("RecorderSetWorld", None, _POINTER, _WORD, _WORD)
        self.add_communicator = function("RecorderAddCommunicator", _WORD, _POINTER, _LONG, ctypes.c_char_p,
                                         ctypes.POINTER(_WORD), _WORD, _WORD)
        self.retire_communicator = function("RecorderRetireCommunicator", None, _POINTER, _WORD)
        self.begin = function("RecorderBeginWords", _WORD, _POINTER, _WORD, _WORD, _LONG, _LONG)
        self.end = function("RecorderEnd", None, _POINTER, _WORD)
        self.forget = function("RecorderForget", None, _POINTER, _WORD)
        self.begin_wait = function("RecorderBeginWait", None, _POINTER, _WORD, ctypes.c_uint16)
        self.end_wait = function("RecorderEndWait", None, _POINTER, _WORD)
        self.leave = function("RecorderLeave", None, _POINTER)


def text_array(texts):
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])


def word_array(numbers):
    return (_WORD * len(numbers))(*numbers)
