// The image of the tests' runtime, under the name of weir's.
        .section .rodata
        .globl weir_runtime_image, weir_runtime_image_end
weir_runtime_image:
        .incbin "test_rt.bin"
weir_runtime_image_end:
        .section .note.GNU-stack, "", @progbits
