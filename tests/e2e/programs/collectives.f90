! What a Fortran program asks of MPI, a known number of times: by the old module, and by the new one.
module older
contains
  subroutine older_part(rank, total)
    use mpi
    integer, intent(in) :: rank
    double precision, intent(out) :: total
    double precision :: mine
    integer :: half, request, requests(2), ierr, i, in, size, statuses(MPI_STATUS_SIZE, 2)
    logical :: done
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    mine = rank + 1
    do i = 1, 6
      call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    end do
    call MPI_Bcast(total, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
    call MPI_Barrier(half, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Irecv(in, 1, MPI_INTEGER, mod(rank + size - 1, size), 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, size), 1, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, statuses, ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, request, ierr)
    done = .false.
    do while (.not. done)
      call MPI_Test(request, done, MPI_STATUS_IGNORE, ierr)
    end do
    total = total + in
  end subroutine
end module

module newer
contains
  subroutine newer_part(rank, total)
    use mpi_f08
    integer, intent(in) :: rank
    double precision, intent(inout) :: total
    double precision :: mine, all
    type(MPI_Request) :: request
    integer :: i
    mine = rank
    do i = 1, 4
      call MPI_Allreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    end do
    call MPI_Iallreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Barrier(MPI_COMM_WORLD)
    total = total + all
  end subroutine
end module

program collectives
  use mpi
  use older
  use newer
  integer :: rank, ierr
  double precision :: total
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call older_part(rank, total)
  call newer_part(rank, total)
  if (rank == 0) print '(A,F10.3)', 'sum', total
  call MPI_Finalize(ierr)
end program
