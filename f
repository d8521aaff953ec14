tok
