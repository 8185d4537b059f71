// The types that every program has. Those that a program makes are not looked into: asking for the size of one that is
// not significant here, and so may be anything, would be an error in the program's name.
#include "probe/pmpi/pmpi.h"

static struct HandleTable the_types;

#ifdef OPEN_MPI
#define ROW(handle, symbol, type, bytes) {"ompi_mpi_" symbol, type, bytes},
static const struct Row {
  const char* symbol;
  uint8_t type, bytes;
} kRows[] = {
#else
#define ROW(handle, symbol, type, bytes) {KEY(handle), type, bytes},
static const struct Row {
  uint64_t key;
  uint8_t type, bytes;
} kRows[] = {
#endif
    ROW(MPI_BYTE, "byte", kRecordByte, 1) ROW(MPI_CHAR, "char", kRecordInt8, 1) ROW(
        MPI_SIGNED_CHAR, "signed_char", kRecordInt8, 1) ROW(MPI_UNSIGNED_CHAR, "unsigned_char", kRecordUint8, 1)
        ROW(MPI_SHORT, "short", kRecordInt16, 2) ROW(MPI_UNSIGNED_SHORT, "unsigned_short", kRecordUint16, 2)
            ROW(MPI_INT, "int", kRecordInt32, 4) ROW(MPI_UNSIGNED, "unsigned", kRecordUint32, 4) ROW(
                MPI_LONG, "long", kRecordInt64, sizeof(long))
                ROW(MPI_UNSIGNED_LONG, "unsigned_long", kRecordUint64, sizeof(long)) ROW(
                    MPI_LONG_LONG, "long_long_int", kRecordInt64, 8) ROW(MPI_UNSIGNED_LONG_LONG, "unsigned_long_long",
                                                                         kRecordUint64, 8)
                    ROW(MPI_INT8_T, "int8_t", kRecordInt8, 1) ROW(MPI_INT16_T, "int16_t", kRecordInt16, 2)
                        ROW(MPI_INT32_T, "int32_t", kRecordInt32, 4) ROW(MPI_INT64_T, "int64_t", kRecordInt64, 8) ROW(
                            MPI_UINT8_T, "uint8_t", kRecordUint8, 1) ROW(MPI_UINT16_T, "uint16_t", kRecordUint16, 2)
                            ROW(MPI_UINT32_T, "uint32_t", kRecordUint32, 4) ROW(
                                MPI_UINT64_T, "uint64_t", kRecordUint64, 8) ROW(MPI_FLOAT, "float", kRecordFloat32, 4)
                                ROW(MPI_DOUBLE, "double", kRecordFloat64, 8)
                                    ROW(MPI_LONG_DOUBLE, "long_double", kRecordLongDouble, sizeof(long double))
                                        ROW(MPI_C_BOOL, "c_bool", kRecordBool, 1)
                                            ROW(MPI_C_FLOAT_COMPLEX, "c_float_complex", kRecordComplex64, 8)
                                                ROW(MPI_C_DOUBLE_COMPLEX, "c_double_complex", kRecordComplex128, 16)
                                                    ROW(MPI_FLOAT_INT, "float_int", kRecordPair, 8) ROW(
                                                        MPI_DOUBLE_INT, "double_int", kRecordPair, 12)
                                                        ROW(MPI_2INT, "2int", kRecordPair, 8) ROW(
                                                            MPI_CHARACTER, "character", kRecordInt8, 1)
                                                            ROW(MPI_LOGICAL, "logical", kRecordBool, 4) ROW(
                                                                MPI_INTEGER, "integer", kRecordInt32, 4)
                                                                ROW(MPI_REAL, "real", kRecordFloat32, 4) ROW(
                                                                    MPI_DOUBLE_PRECISION, "dblprec", kRecordFloat64, 8)
                                                                    ROW(MPI_COMPLEX, "cplex", kRecordComplex64, 8)
                                                                        ROW(MPI_DOUBLE_COMPLEX, "dblcplex",
                                                                            kRecordComplex128, 16)};

void LearnTypes(void) {
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; ++i) {
#ifdef OPEN_MPI
    const uint64_t key = KEY(FindConstant(kRows[i].symbol));
#else
    const uint64_t key = kRows[i].key;
#endif
    uint64_t known;
    if (key > 1 && !HandleFind(&the_types, key, &known)) {
      HandleInsert(&the_types, key, (uint64_t)kRows[i].bytes << 8 | kRows[i].type);
    }
  }
}

struct Amount AmountOf(int64_t count, uint64_t type, bool varies) {
  uint64_t known;
  if (count < 0 || !HandleFind(&the_types, type, &known)) {
    return (struct Amount){.bytes = 0, .type = kRecordOtherType, .varies = varies};
  }
  return (struct Amount){.bytes = (uint64_t)count * (known >> 8), .type = (uint8_t)known, .varies = varies};
}
