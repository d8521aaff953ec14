#!/bin/sh
# Greets the one who is named.
echo "Helo, ${1:-world}!"
