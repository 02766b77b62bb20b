// The runtime's image, as bytes of the weir process.
        .section .rodata
        .globl weir_runtime_image, weir_runtime_image_end
weir_runtime_image:
        .incbin "rt.bin"
weir_runtime_image_end:
        .section .note.GNU-stack, "", @progbits
