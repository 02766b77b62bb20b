# viewer/'s HTML file, as it is: PAGE is its path.
    .section .rodata
    .globl weir_page_begin, weir_page_end
weir_page_begin:
    .incbin PAGE
weir_page_end:
    .section .note.GNU-stack, "", @progbits
