/* Signals as events of the loop: handlers only set a flag and write a byte to a pipe. */
#ifndef MTUI_TUI_SIGNALS_H
#define MTUI_TUI_SIGNALS_H

enum signal_flag {
    SIGNALS_RESIZE = 1 << 0,    /* SIGWINCH */
    SIGNALS_QUIT = 1 << 1,      /* SIGTERM */
    SIGNALS_INTERRUPT = 1 << 2, /* SIGINT, SIGQUIT */
    SIGNALS_HANGUP = 1 << 3,    /* SIGHUP */
    SIGNALS_SUSPEND = 1 << 4,   /* SIGTSTP */
    SIGNALS_RESUME = 1 << 5     /* SIGCONT */
};

/* Installs the handlers (SIGPIPE, SIGUSR1 and SIGUSR2 get one that does nothing: unlike SIG_IGN it is
 * not inherited by the programs that mtui starts). Returns the descriptor to poll for POLLIN, which
 * belongs to the module; −1 when there is no descriptor to be had. May be called again. */
int signals_open(void);

/* Empties the pipe; returns what came since the last call (enum signal_flag). */
unsigned signals_take(void);

/* Puts the former handlers back. */
void signals_close(void);

/* Stops the process group until someone continues it. Call with the terminal restored; returns after
 * SIGCONT (or at once where job control cannot work: an orphaned process group). */
void signals_stop_self(void);

#endif
