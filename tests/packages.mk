# Which Debian packages are needed, and why; the README has the same table in words.
#   have-*-packages  stop with the one line that installs what is missing
#   deps-*           install what is missing, saying so (sudo when not root)

build_packages = gcc libc6-dev libncurses-dev libipt-dev libelf-dev libdw-dev libpcre2-dev libzstd-dev \
	zlib1g-dev liblzma-dev libiberty-dev libzydis-dev
run_packages   = linux-perf
check_packages = libcmocka-dev g++ tmux procps python3-minimal xz-utils util-linux groff-base

missing = $(shell command -v dpkg-query >/dev/null && for p in $(1); do \
	dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done)

have-build-packages:
	@m="$(strip $(call missing,$(build_packages)))"; [ -z "$$m" ] || { \
	echo "mtui needs a few packages that are not installed yet. This installs them:"; \
	echo "    $(strip $(sudo) apt-get install $$m)"; exit 1; } >&2
have-check-packages:
	@m="$(strip $(call missing,$(check_packages)))"; [ -z "$$m" ] || { \
	echo "The tests need packages that are not installed yet. This installs them:"; \
	echo "    $(strip $(sudo) apt-get install $$m)"; exit 1; } >&2
.PHONY: have-build-packages have-check-packages

sudo = $(if $(filter 0,$(shell id -u)),,sudo)
install_missing = @m="$(strip $(call missing,$(1)))"; [ -z "$$m" ] || { \
	echo "Installing $$m: $(2)"; \
	$(sudo) apt-get update -qq && $(sudo) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$m >/dev/null; }

why_build = a C compiler and the libraries that mtui is built with
why_run   = perf, which does the recording
why_check = the test library, a C++ compiler for traced examples, a terminal, and what tests compare with
deps-build:
	$(call install_missing,$(build_packages),$(why_build))
	$(call install_missing,$(run_packages),$(why_run))
deps-check: deps-build
	$(call install_missing,$(check_packages),$(why_check))
