// How the tables' parameters are written in C.
#define IN(x) const void* x
#define OUT(x) void* x
#define INT(x) int x
#define INTS(x) const int x[]
#define PLACES(x) const MPI_Aint x[]
#define TYPE(x) MPI_Datatype x
#define TYPES(x) const MPI_Datatype x[]
#define OP(x) MPI_Op x
#define COMM(x) MPI_Comm x
#define MADE(x) MPI_Comm* x
#define GROUP(x) MPI_Group x
#define INFO(x) MPI_Info x
#define WINDOW(x) MPI_Win x
#define WINDOW_OUT(x) MPI_Win* x
#define FILE_IN(x) MPI_File x
#define FILE_OUT(x) MPI_File* x
#define OFFSET(x) MPI_Offset x
#define MESSAGE(x) MPI_Message* x
#define STATUS(x) MPI_Status* x

#define COUNT(count, type) AmountOf(count, KEY(type), false)
#define VARIES(count, type) AmountOf(count, KEY(type), true)
#define NOTHING ((struct Amount){0, kRecordOtherType, true})
#define ROOT(root) ToPeer(root)
