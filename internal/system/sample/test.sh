#!/bin/sh
# Fails until the greeting is right.
got=$(sh greet.sh thole)
if [ "$got" != "Hello, thole!" ]; then
	echo "FAIL: got \"$got\""
	exit 1
fi
echo "ok: $got"
