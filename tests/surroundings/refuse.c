/* Run a program to which the kernel refuses what Docker's default profile does: with EPERM,
   pidfd_open, pidfd_getfd, process_vm_readv, process_vm_writev, ptrace, and netlink but for routes,
   without which no program has network. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IS(number, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, count, 0)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

int main(int count, char **arguments) {
  struct sock_filter filter[] = {
      LOAD(nr),
      IS(SYS_process_vm_readv, 10),
      IS(SYS_process_vm_writev, 9),
      IS(SYS_ptrace, 8),
      IS(434 /* pidfd_open */, 7),
      IS(438 /* pidfd_getfd */, 6),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4),
      LOAD(args[0]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 2),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0 /* NETLINK_ROUTE */, 0, 1),
      RETURN(SECCOMP_RET_ALLOW),
      RETURN(SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("seccomp");
    return 77;
  }
  execvp(arguments[1], arguments + 1);
  perror(arguments[1]);
  return 1;
}
